"""The full-screen app: thin, over the same functions as the command line."""
