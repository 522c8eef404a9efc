"""What a store of profiles teaches: priors, trials on runs held back, and how far off estimators are."""
