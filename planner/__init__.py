"""moeplan: from a cluster and a measured expert load to a placement that can be loaded and checked."""

__version__ = "0.1.0"
