"""Permission points: the parts of tables that a query touches, in five grains, and the grants on them."""
