// Does deletion end as promised on the embedded API server and on a real one?
import { whyNoEnvtest } from '../stack.ts';
import { describeDeletion } from './deletion.ts';

describeDeletion('on the embedded API server', []);
describeDeletion('on a real API server', ['--cluster', 'envtest'], whyNoEnvtest());
