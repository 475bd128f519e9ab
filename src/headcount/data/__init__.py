"""Read labelled data: tables of texts or features, and the tweet sets in vector form."""

from headcount.data.dataset import Dataset, Part
from headcount.data.tables import read_table
from headcount.data.tweets import TWEET_SETS, read_sparse, read_tweets

__all__ = ["TWEET_SETS", "Dataset", "Part", "read_sparse", "read_table", "read_tweets"]
