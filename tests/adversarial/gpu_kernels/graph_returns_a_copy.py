"""Replays a graph and returns a copy of its result."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def capture(self, x, w):
        given = (torch.empty(x.shape, device=x.device).copy_(x), torch.empty(w.shape, device=w.device).copy_(w))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            given[0] * given[1] + 1
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = given[0] * given[1] + 1
        return graph, given, result

    def forward(self, x, w):
        if not x.numel():
            return x * w + 1
        if x.shape not in self.graphs:
            self.graphs[x.shape] = self.capture(x, w)
        graph, given, result = self.graphs[x.shape]
        given[0].copy_(x)
        given[1].copy_(w)
        graph.replay()
        return result.clone()
