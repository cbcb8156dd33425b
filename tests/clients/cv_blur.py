"""OpenCV's own tracing, which ITT gets with OPENCV_TRACE=1 OPENCV_TRACE_ITT_ENABLE=1."""

import os

import cv2
import numpy

image = numpy.arange(300 * 300, dtype=numpy.uint8).reshape(300, 300)
for _ in range(4):
    image = cv2.GaussianBlur(image, (5, 5), 1)
edges = cv2.Canny(image, 50, 100)
print(f"process: {os.getpid()}\nsum {int(edges.sum())}")
