// Does the instance serve the models that a key, a user or a team names, and has each something left of its own budget?
import type { Judgement } from '#core/conditions.ts';
import { toProblem } from '#core/finding.ts';
import type { Problem } from '../problem.ts';
import { CLAIM_OF, type Member } from '../world.ts';
import { whyNotMember } from './judge-member.ts';
import { modelMistakes } from './mistakes.ts';
import { spentModels } from './model-budgets.ts';
import type { Outlook, Standing } from './outlook.ts';

/** `ModelsReady`: whether the instance serves all of its models, and each has something left of its own budget; unknown while that cannot be told of an instance. */
export function judgeModels(member: Member, outlook: Outlook): Judgement {
  const type = 'ModelsReady';
  const standing = outlook.standing(member);
  if (!('judgement' in standing)) {
    const why = whyNotMember(member, outlook) ?? { reason: 'Pending', message: 'its instance was not looked at yet' };
    return { type, status: 'Unknown', ...why };
  }
  const unserved = toProblem(modelMistakes(member, outlook));
  if (unserved !== undefined) return { type, status: 'False', ...unserved };
  const spent = spentOn(member, standing, outlook);
  if (spent !== undefined) return { type, status: 'False', ...spent };
  return {
    type,
    status: 'True',
    reason: 'Ready',
    message: `the instance serves all models of the ${CLAIM_OF[member.kind]}`,
  };
}

function spentOn(member: Member, standing: Standing, outlook: Outlook): Problem | undefined {
  if (member.kind !== 'VirtualKey' || standing.at !== 'admitted') return undefined;
  const state = outlook.claim(member, standing.instance);
  if (state.state !== 'ours') return undefined;
  const spent = spentModels(member, state.claim, standing.instance, outlook);
  const [first] = spent;
  return first && { reason: first.problem.reason, message: spent.map(({ problem }) => problem.message).join('; ') };
}
