"""What policies cost queries of Spark, next to the same queries without them."""
