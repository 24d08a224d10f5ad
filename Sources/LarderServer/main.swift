import Foundation
print("larder")
