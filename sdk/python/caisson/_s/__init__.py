"""The client that blocks. Written by sdk/python/generate from caisson/_a. Do not edit."""
