"""Drawing of rows along one shared axis: scales, curves, marks, and the widgets made of them."""
