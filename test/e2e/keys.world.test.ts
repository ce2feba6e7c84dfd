// Rotation and deletion of keys with the stock `kubectl`.

import { bothInCampaigns } from '../support/clusters.ts';
import { describeOnBothClusters } from './both-clusters.ts';
import { describeDeletion } from './deletion.ts';
import { describeRotation } from './rotation.ts';

describeOnBothClusters(
  'keys',
  ['--schedule', '1'],
  (stack) => {
    describeRotation(stack);
    // Deletions run last, because they delete the instance. A real garbage collector needs half a minute to learn our
    // kinds.
    describeDeletion(stack);
  },
  bothInCampaigns(),
);
