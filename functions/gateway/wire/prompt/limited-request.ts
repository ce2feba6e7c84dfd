// Requests for one answer with one limit, as Messages and Responses have them: members that both APIs read alike.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { invalid, isAbsent, isCount, type ModelRequest, type ParsedBody } from '../request.ts';
import {
  ambiguousIn,
  compactionIn,
  declaredToolsIn,
  type Members,
  type Rule,
  unmeteredIn,
} from './unmetered-features.ts';

/** The form of such a request in an API. */
export interface RequestForm {
  /** The member that limits the answer. */
  readonly limit: string;
  readonly rules: ReadonlyArray<Rule>;
  /** Members whose objects contain deciding members. Each of these may occur only once, in one spelling. */
  readonly nested: ReadonlyMap<string, ReadonlyArray<string>>;
}

/** A request without the parts that only its API reads. */
export interface LimitedRequest {
  readonly members: Members;
  readonly request: Omit<ModelRequest, 'minOutput' | 'input' | 'webSearches' | 'stored'>;
}

/**
 * Reads a request from its parsed body. `findWrongMember`: the refusal of the first member with a type that no provider of the API accepts.
 */
export function readLimited(
  parsed: Result<ParsedBody, Failure>,
  { limit: limitName, rules, nested }: RequestForm,
  findWrongMember: (members: Members) => Result<never, Failure> | undefined,
): Result<LimitedRequest, Failure> {
  if (!parsed.ok) return parsed;
  const { members, ...shared } = parsed.value;
  const { body } = shared;
  const { stream, [limitName]: limit } = members;
  const refused = findWrongMember(members);
  if (refused !== undefined) return refused;
  if (!isAbsent(stream) && typeof stream !== 'boolean') return invalid('"stream" must be true or false.', 'stream');
  if (!isAbsent(limit) && !isCount(limit)) return invalid(`"${limitName}" must be a whole number from 1.`, limitName);
  const { members: written } = body.object;
  const unmetered =
    unmeteredIn(members, rules) ??
    ambiguousIn(body.text, written, nested) ??
    compactionIn(body.text, written) ??
    declaredToolsIn(body.text);
  if (unmetered !== undefined) return err(unmetered);
  const request = {
    ...shared,
    stream: stream === true,
    streamOptions: undefined,
    includeUsage: true,
    n: 1,
    limits: { [limitName]: limit ?? undefined },
    limit: limit ?? undefined,
  };
  return ok({ members, request });
}
