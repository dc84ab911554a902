"""Expert compute of the model's true shapes: grouped GEMMs, a file for each library that has them."""
