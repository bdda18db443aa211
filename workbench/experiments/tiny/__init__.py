"""The build of the tiny policy: training data, training, measurement and the model card."""
