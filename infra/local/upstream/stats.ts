// What has the sample upstream reported? Tests compare it with what was booked.
import type { Usage } from './completion.ts';

export interface ModelStats {
  requests: number;
  /** Replies whose usage was sent to the end. */
  reported: number;
  promptTokens: number;
  completionTokens: number;
  /** Replies that the caller did not wait for. */
  abandoned: number;
}

export interface Stats {
  requested(model: string): void;
  reported(model: string, usage: Usage): void;
  abandoned(model: string): void;
  read(): { readonly models: Readonly<Record<string, Readonly<ModelStats>>> };
}

export function createStats(): Stats {
  const models = new Map<string, ModelStats>();
  const of = (model: string): ModelStats => {
    const fresh = { requests: 0, reported: 0, promptTokens: 0, completionTokens: 0, abandoned: 0 };
    const stats = models.get(model) ?? fresh;
    models.set(model, stats);
    return stats;
  };
  return {
    requested: (model) => {
      of(model).requests += 1;
    },
    reported: (model, usage) => {
      const stats = of(model);
      stats.reported += 1;
      stats.promptTokens += usage.prompt_tokens;
      stats.completionTokens += usage.completion_tokens;
    },
    abandoned: (model) => {
      of(model).abandoned += 1;
    },
    read: () => ({ models: Object.fromEntries(models) }),
  };
}
