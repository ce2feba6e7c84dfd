// The ready block: addresses and commands to copy and paste.
import { relative } from 'node:path';
import { formatMoney, parseMoney } from '../../../functions/core/money/money.ts';
import type { Options } from './options.ts';
import type { FirstCall } from './sample/sample.ts';
import type { Endpoints } from './stack.ts';

export function describeFirstCall({ model, reply, tokens, spendBefore, spendAfter }: FirstCall): string {
  return `
  model   ${model}
  reply   ${reply}
  tokens  ${tokens.input} in, ${tokens.output} out
  spend   $${spendBefore} before, $${spendAfter} after: this call cost $${subtract(spendAfter, spendBefore)}`;
}

/** Both are exact decimal strings. */
const subtract = (after: string, before: string) => formatMoney((parseMoney(after) ?? 0n) - (parseMoney(before) ?? 0n));

export function describeReady(endpoints: Endpoints, options: Options): string {
  const near = relative(process.cwd(), options.state);
  const state = near === '' || near.startsWith('..') ? options.state : near;
  const sample = [
    '  # call the gateway with the key that was made',
    "  KEY=$(kubectl get secret $(kubectl get virtualkey example-service -o jsonpath='{.status.keySecretRef}') -o jsonpath='{.data.key}' | base64 -d)",
    `  curl ${endpoints.gateway}/default/sample/chat/completions -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\`,
    `    -d '{"model":"sample-small","messages":[{"role":"user","content":"Hello"}]}'`,
    '',
    '  # or any OpenAI client',
    `  export OPENAI_API_KEY=$KEY OPENAI_BASE_URL=${endpoints.gateway}/default/sample`,
    '',
    `  # remove the sample (each start writes this file again: change a copy)`,
    `  kubectl delete -f ${state}/sample.yaml`,
  ];
  const { gateway, upstream } = endpoints;
  const empty = [`  # gateway ${gateway}, sample upstream ${upstream}/v1; all addresses: ${state}/endpoints.json`];
  return [
    '',
    `Ready. Everything is kept in ${state}; a second start finds it again. Ctrl-C stops.`,
    '',
    '  # kubectl, in another terminal',
    `  export KUBECONFIG=${endpoints.kubeconfig}`,
    '  kubectl get llm-gateway -A',
    '',
    ...(options.empty ? empty : sample),
    '',
  ].join('\n');
}
