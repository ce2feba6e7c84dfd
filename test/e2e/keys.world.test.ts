// Rotation and deletion of keys with the stock `kubectl`.

import { describeOnOneCluster } from './both-clusters.ts';
import { describeDeletion } from './deletion.ts';
import { describeRotation } from './rotation.ts';

describeOnOneCluster('keys', ['--schedule', '1'], (stack) => {
  describeRotation(stack);
  // Deletions run last, because they delete the instance. A real garbage collector needs half a minute to learn our
  // kinds.
  describeDeletion(stack);
});
