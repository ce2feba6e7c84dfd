import { whyNoEnvtest } from '../stack.ts';
import { describeWalk } from './walk.ts';

describeWalk('the walk on the embedded cluster', []);
describeWalk('the walk on a real kube-apiserver', ['--cluster', 'envtest'], whyNoEnvtest());
