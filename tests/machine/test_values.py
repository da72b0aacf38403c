"""Numbers, sizes and addresses out of what tools print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.machine.values import integer, known_text, number, pci_address, size_bytes, switch


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1980 MHz", 1980.0),
        ("80.75 W", 80.75),
        ("(141Mhz)", 141.0),
        ("-8 C", -8.0),
        ({"value": 10, "unit": "W"}, 10.0),
        ({"value": "N/A", "unit": "W"}, None),
        (0, 0.0),
        ("[N/A]", None),
        ("[Not Supported]", None),
        ("Requested functionality has been deprecated", None),
        (True, None),
        (None, None),
        (float("inf"), None),
    ],
)
def test_number(value: object, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("143771 MiB", 143771 << 20),
        ({"value": 196592, "unit": "MB"}, 196592 << 20),
        ("25769803776", 25769803776),
        (12, 12),
        ("3 parsecs", None),
        ("N/A", None),
        (-1, None),
    ],
)
def test_size_bytes(value: object, expected: int | None) -> None:
    assert size_bytes(value) == expected


def test_pci_address() -> None:
    assert pci_address("00000000:3B:00.0") == "0000:3b:00.0"
    assert pci_address("3b:00.1") == "0000:3b:00.1"
    assert pci_address("0001:03:1f.7") == "0001:03:1f.7"
    for wrong in ("", "N/A", None, "3b", "zz:00.0", 7):
        assert pci_address(wrong) is None


def test_switch_and_text() -> None:
    assert switch("Enabled") is True and switch("Not Active") is False and switch("0") is False
    assert switch("N/A") is None and switch(None) is None and switch(True) is True
    assert known_text("  x ") == "x" and known_text("None") is None and known_text([]) is None
    assert integer("304 CUs") == 304


@given(st.text(max_size=60))
def test_any_text_gives_a_value_or_none(text: str) -> None:
    number(text)
    size_bytes(text)
    pci_address(text)
    switch(text)
