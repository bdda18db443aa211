"""Run folders: checkpoints, metrics, stored feedback, and tables read from them."""
