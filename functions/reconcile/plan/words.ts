// Which words does a policy carry for people: for the log of requests, for reports of spend?
import type { Wording } from '#core/ports/policy.ts';
import type { Member } from '../world.ts';

export function wordsOf(member: Member): Wording {
  if (member.kind === 'Team') return {};
  if (member.kind === 'User') {
    const { userAlias } = member.spec;
    return userAlias === undefined ? {} : { alias: userAlias };
  }
  const { tags, metadata } = member.spec;
  return { ...(isEmpty(tags) ? {} : { tags }), ...(isEmpty(metadata) ? {} : { metadata }) };
}

const isEmpty = (value: object | undefined): boolean => value === undefined || Object.keys(value).length === 0;
