"""The two inputs: are they neighbours, which are tried, and the rows behind them."""
