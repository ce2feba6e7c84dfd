// Do keys rotate and go as promised, with the stock `kubectl`?
import { describeDeletion } from './deletion.ts';
import { describeOnBoth } from './on-both.ts';
import { describeRotation } from './rotation.ts';

describeOnBoth('keys', ['--schedule', '1'], (stack) => {
  describeRotation(stack);
  // Last, for they take the instance away; a real garbage collector does not know our kinds in its first half a minute.
  describeDeletion(stack);
});
