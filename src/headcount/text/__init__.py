"""Documents to vectors or scores: tf-idf, word vectors, encoders, BM25, fine-tuning."""

from headcount.text.bm25 import BM25Classifier
from headcount.text.encoder import SentenceEncoder
from headcount.text.finetune import FineTuned, FirstToken
from headcount.text.names import VECTORIZERS, make_vectorizer
from headcount.text.tfidf import TfIdf
from headcount.text.words import MeanVectors

__all__ = [
    "VECTORIZERS",
    "BM25Classifier",
    "FineTuned",
    "FirstToken",
    "MeanVectors",
    "SentenceEncoder",
    "TfIdf",
    "make_vectorizer",
]
