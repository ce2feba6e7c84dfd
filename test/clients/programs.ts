// The real programs: how each is pointed at an address and asked (docs/clients.md), and how it ends where it cannot be answered.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../temporary-folder.ts';
import { FOLDER } from './install.ts';

export type Scene = 'text' | 'stream' | 'tool';

export interface Target {
  readonly url: string;
  readonly key: string;
}

export interface Command {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
  readonly env: Readonly<Record<string, string>>;
}

export interface Program {
  readonly name: string;
  readonly scenes: ReadonlyArray<Scene>;
  /** Requests at a spent budget, at most; and words that the person reads. */
  readonly spent: { readonly requests: number; readonly says: RegExp };
  /** Whether the program asks again by itself when a stream has broken, and so has its answer; else its user reads of the error. */
  readonly asksAgain: boolean;
  toCommand(to: Target, scene: Scene): Command;
}

const ALL: ReadonlyArray<Scene> = ['text', 'stream', 'tool'];
const NAMED = /The budget of key .{1,3}billing.{1,3} is exceeded/;

/** A program of a few lines that uses a library. */
function library(file: string, api: string, differences: Partial<Program> = {}): Program {
  const isPython = file.endsWith('.py');
  const model = api === 'messages' ? 'claude-sonnet-4-5' : api === 'embeddings' ? 'text-embedding-3-small' : 'gpt-5';
  return {
    name: `${file} (${api})`,
    scenes: api === 'embeddings' ? ['text'] : ALL,
    spent: { requests: 1, says: NAMED },
    asksAgain: false,
    toCommand: ({ url, key }, scene) => ({
      command: isPython ? join(FOLDER, 'py/bin/python') : process.execPath,
      args: [join(FOLDER, 'programs', file)],
      env: { BASE_URL: url, KEY: key, MODEL: model, API: api, SCENE: scene },
    }),
    ...differences,
  };
}

/** The AI SDK reads no header that forbids a retry. */
const ofAiSdk = { spent: { requests: 3, says: NAMED } };

const prompt = (scene: Scene) => (scene === 'tool' ? 'use the tool' : 'say hi');
const bin = (name: string) => join(FOLDER, 'node_modules/.bin', name);

const claude: Program = {
  name: 'Claude Code',
  scenes: ['stream', 'tool'],
  spent: { requests: 1, says: NAMED },
  asksAgain: true,
  toCommand: ({ url, key }, scene) => ({
    command: bin('claude'),
    args: ['-p', prompt(scene), '--model', 'claude-sonnet-4-5', '--allowedTools', 'Bash'],
    env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
  }),
};

const codex: Program = {
  name: 'Codex',
  scenes: ['stream', 'tool'],
  spent: { requests: 1, says: /hit your usage limit\. The budget of key .{1,3}billing/ },
  asksAgain: true,
  toCommand: ({ url, key }, scene) => {
    const home = temporaryFolder();
    const config = [
      ...['model = "gpt-5"', 'model_provider = "gateway"', '[analytics]', 'enabled = false'],
      ...['[model_providers.gateway]', 'name = "Gateway"', `base_url = "${url}"`],
      ...['env_key = "GATEWAY_KEY"', 'wire_api = "responses"'],
    ];
    writeFileSync(join(home, 'config.toml'), config.join('\n'));
    return {
      command: bin('codex'),
      args: ['exec', '--skip-git-repo-check', prompt(scene)],
      env: { GATEWAY_KEY: key, CODEX_HOME: home },
    };
  },
};

function opencode(api: string, npm: string, model: string): Program {
  return {
    name: `OpenCode (${api})`,
    scenes: ['stream', 'tool'],
    // A title is asked for beside the turn; both are repeated five times.
    spent: { requests: 12, says: NAMED },
    asksAgain: true,
    toCommand: ({ url, key }, scene) => {
      const home = temporaryFolder();
      mkdirSync(join(home, 'opencode'), { recursive: true });
      const gateway = { npm, name: 'Gateway', options: { baseURL: url, apiKey: key }, models: { [model]: {} } };
      const main = `gateway/${model}`;
      const config = {
        ...{ autoupdate: false, share: 'disabled', model: main, small_model: main },
        ...{ enabled_providers: ['gateway'], provider: { gateway } },
      };
      writeFileSync(join(home, 'opencode/opencode.json'), JSON.stringify(config));
      return {
        command: bin('opencode'),
        args: ['run', '--model', main, prompt(scene)],
        env: { XDG_CONFIG_HOME: home },
      };
    },
  };
}

export const PROGRAMS: ReadonlyArray<Program> = [
  library('openai.mjs', 'chat'),
  library('openai.mjs', 'responses'),
  library('openai.mjs', 'embeddings'),
  library('openai_client.py', 'chat'),
  library('openai_client.py', 'responses'),
  library('openai_client.py', 'embeddings'),
  library('anthropic.mjs', 'messages'),
  library('anthropic_client.py', 'messages'),
  library('ai.mjs', 'responses', ofAiSdk),
  library('ai.mjs', 'chat', { ...ofAiSdk, asksAgain: true }),
  library('ai.mjs', 'messages', ofAiSdk),
  library('langchain.mjs', 'chat'),
  library('langchain.mjs', 'responses'),
  claude,
  codex,
  opencode('messages', '@ai-sdk/anthropic', 'claude-sonnet-4-5'),
  opencode('responses', '@ai-sdk/openai', 'gpt-5'),
  opencode('chat', '@ai-sdk/openai-compatible', 'gpt-5'),
];
