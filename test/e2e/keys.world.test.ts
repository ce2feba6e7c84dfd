// Rotation and deletion of keys with the stock `kubectl`, on both clusters.

import { describeOnBothClusters } from './both-clusters.ts';
import { describeDeletion } from './deletion.ts';
import { describeRotation } from './rotation.ts';

describeOnBothClusters('keys', ['--schedule', '1'], (stack) => {
  describeRotation(stack);
  // Last, for they take the instance away; a real garbage collector does not know our kinds in its first half a minute.
  describeDeletion(stack);
});
