// The walk of the README.
import { describeOnOneCluster } from './both-clusters.ts';
import { describeWalk } from './walk.ts';

describeOnOneCluster('the walk', [], describeWalk);
