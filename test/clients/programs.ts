// The real programs, with the settings of docs/use/clients.md as they are there: how each is asked, and how it ends where
// it cannot be answered.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { documented } from '../platforms/documented.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { FOLDER } from './install.ts';

const PAGE = 'docs/use/clients.md';

export type Scenario = 'text' | 'stream' | 'tool';

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
  readonly scenarios: ReadonlyArray<Scenario>;
  /** Requests at a spent budget, at most; and words that the person reads. */
  readonly spent: { readonly requests: number; readonly says: RegExp };
  /**
   * Whether the program asks again by itself when a stream has broken, and so has its answer; else its user reads of
   * the error.
   */
  readonly asksAgain: boolean;
  toCommand(to: Target, scenario: Scenario): Command;
  /** Its small model, and a command that calls it; absent: the program has none. */
  readonly small?: { readonly model: string; toCommand(to: Target): Command };
}

const ALL: ReadonlyArray<Scenario> = ['text', 'stream', 'tool'];
const NAMED = /The budget of key .{1,3}billing.{1,3} is exceeded/;

/** A program of a few lines that uses a library. */
function library(file: string, api: string, differences: Partial<Program> = {}): Program {
  const isPython = file.endsWith('.py');
  const model = api === 'messages' ? 'claude-sonnet-4-5' : api === 'embeddings' ? 'text-embedding-3-small' : 'gpt-5';
  return {
    name: `${file} (${api})`,
    scenarios: api === 'embeddings' ? ['text'] : ALL,
    spent: { requests: 1, says: NAMED },
    asksAgain: false,
    toCommand: ({ url, key }, scenario) => ({
      command: isPython ? join(FOLDER, 'py/bin/python') : process.execPath,
      args: [join(FOLDER, 'programs', file)],
      env: {
        BASE_URL: url,
        KEY: key,
        MODEL: model,
        API: api,
        SCENARIO: scenario,
        OPENAI_BASE_URL: url,
        OPENAI_API_KEY: key,
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: key,
      },
    }),
    ...differences,
  };
}

/** The AI SDK reads no header that forbids a retry. */
const ofAiSdk = { spent: { requests: 3, says: NAMED } };

const prompt = (scenario: Scenario) => (scenario === 'tool' ? 'use the tool' : 'say hi');
const PATH = `${join(FOLDER, 'node_modules/.bin')}:${process.env.PATH}`;

interface Models {
  readonly MODEL: string;
  readonly SMALL_MODEL: string;
}

export const CLAUDE: Models = { MODEL: 'claude-sonnet-4-5', SMALL_MODEL: 'claude-haiku-4-5' };
export const GPT: Models = { MODEL: 'gpt-5', SMALL_MODEL: 'gpt-5-mini' };

/** The page's command with further words, in a shell with what the page calls by name. */
function typed(block: string, words: string, { url, key }: Target, env: Command['env']): Command {
  const text = `${documented(PAGE, block)} ${words}`;
  return { command: 'bash', args: ['-euc', text], env: { PATH, BASE_URL: url, KEY: key, ...env } };
}

/** The page's file with the values in place of the names. */
function filled(block: string, language: string, { url }: Target, { MODEL, SMALL_MODEL }: Models): string {
  const text = documented(PAGE, block, language);
  return text.replaceAll('SMALL_MODEL', SMALL_MODEL).replaceAll('MODEL', MODEL).replaceAll('BASE_URL', url);
}

const claude: Program = {
  name: 'Claude Code',
  scenarios: ['stream', 'tool'],
  spent: { requests: 1, says: NAMED },
  asksAgain: true,
  toCommand: (to, scenario) =>
    typed('claude', '-p "$PROMPT" --allowedTools Bash', to, { ...CLAUDE, PROMPT: prompt(scenario) }),
  small: {
    model: CLAUDE.SMALL_MODEL,
    toCommand: (to) => typed('claude', '-p "say hi" --model haiku', to, { ...CLAUDE }),
  },
};

const codex: Program = {
  name: 'Codex',
  scenarios: ['stream', 'tool'],
  spent: { requests: 1, says: /hit your usage limit\. The budget of key .{1,3}billing/ },
  asksAgain: true,
  toCommand: (to, scenario) => {
    const home = temporaryFolder();
    writeFileSync(join(home, 'config.toml'), filled('codex', 'toml', to, GPT));
    const words = 'exec --skip-git-repo-check "$PROMPT"';
    return typed('codex command', words, to, { CODEX_HOME: home, PROMPT: prompt(scenario) });
  },
};

function opencode(api: string, npm: string, models: Models): Program {
  return {
    name: `OpenCode (${api})`,
    scenarios: ['stream', 'tool'],
    // A title is asked for beside the turn; both are repeated five times.
    spent: { requests: 12, says: NAMED },
    asksAgain: true,
    toCommand: (to, scenario) => {
      const home = temporaryFolder();
      mkdirSync(join(home, 'opencode'), { recursive: true });
      const config = filled('opencode', 'json', to, models).replace('@ai-sdk/anthropic', npm);
      writeFileSync(join(home, 'opencode/opencode.json'), config);
      return typed('opencode command', 'run "$PROMPT"', to, { XDG_CONFIG_HOME: home, PROMPT: prompt(scenario) });
    },
    // The title of its session.
    small: { model: models.SMALL_MODEL, toCommand: (to) => opencode(api, npm, models).toCommand(to, 'stream') },
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
  opencode('messages', '@ai-sdk/anthropic', CLAUDE),
  opencode('responses', '@ai-sdk/openai', GPT),
  opencode('chat', '@ai-sdk/openai-compatible', GPT),
];
