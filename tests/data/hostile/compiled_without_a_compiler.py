# torch.compile with the backend that compiles nothing
# status: 0
# says: FITS h200
import training

training.net = training.torch.compile(training.net, backend="eager")
training.step()
training.step()
