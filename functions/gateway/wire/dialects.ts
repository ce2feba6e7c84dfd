// Which dialects does the gateway speak? A provider of another one is told apart from one that is down.
import type { DialectName } from '#core/providers.ts';
import { anthropic } from './anthropic.ts';
import type { Dialect } from './dialect.ts';
import { openai } from './openai.ts';

export const dialects: ReadonlyMap<DialectName, Dialect> = new Map([
  ['openai', openai],
  ['anthropic', anthropic],
]);
