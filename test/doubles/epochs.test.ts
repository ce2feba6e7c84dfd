import { describeEpochs } from '#core/ports/test/epochs.promises.ts';
import { createMemoryEpochs } from './epochs.ts';
import { createManualTime } from './time.ts';

describeEpochs('memory', async () => createMemoryEpochs(createManualTime()).of);
