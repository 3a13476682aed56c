"""Validates volumes with the reader of the Library of Congress: bag.py FOLDER..."""

import sys

import bagit

for folder in sys.argv[1:]:
    bag = bagit.Bag(folder)
    bag.validate()
    print(folder, bag.info["Payload-Oxum"], len(bag.payload_entries()))
