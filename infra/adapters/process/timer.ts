// Timers of the process.
import { MAX_TIMER, type Timer } from '#core/ports/platform.ts';

export const processTimer: Timer = (millis, callback) => {
  const timeout = setTimeout(callback, Math.min(millis, MAX_TIMER));
  return () => clearTimeout(timeout);
};
