"""A verified run -> the forms in which others keep benchmark results: the Hub's, a model card's, Every Eval Ever's."""
