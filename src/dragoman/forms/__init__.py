"""This package has the forms, which turn texts, labels, trees and boxes into numbers and back."""
