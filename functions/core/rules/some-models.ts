// Does an instance serve anything?
import type { Finding } from '../finding.ts';

export function someModels(models: ReadonlyArray<unknown>): Finding[] {
  if (models.length > 0) return [];
  const message = 'has no entries, so the instance serves no model; add an entry for each model to serve';
  return [{ rule: 'NoModels', path: 'spec.models', value: undefined, message, effect: 'warn' }];
}
