// How are people told something about an object?
import type { Action, ActionOf } from '../action.ts';
import type { OwnObject } from '../world.ts';
import { about } from './about.ts';

type Told = Pick<ActionOf<'RecordEvent'>, 'type' | 'reason' | 'message' | 'once'>;

/** An event. With the same `once` it is told once, however often it is planned. */
export const tell = (object: Pick<OwnObject, 'kind' | 'metadata'>, told: Told): Action => ({
  action: 'RecordEvent',
  ...about(object, `people are told ${told.reason}`),
  ...told,
});
