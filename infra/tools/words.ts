// Words and names that must not come back (LANGUAGE 2, STYLE "Names"): where each is forbidden, and what to write
// instead.
// `npm run check` counts them (test/rules/words.test.ts). `node infra/tools/words.ts [PATTERN]` prints every
// occurrence.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROOT } from './imports.ts';

/** Prose: comments and pages. Message: strings, SQL, manifests. Type: names of declared types. */
export type Place = 'identifier' | 'type' | 'prose' | 'message' | 'file name';

export interface ForbiddenWord {
  /**
   * In texts without camelCase, underscores and hyphens: `createJournal` and `create_journal` are read as `create
   * journal`.
   */
  readonly pattern: RegExp;
  readonly places: ReadonlyArray<Place>;
  readonly use: string;
  /** Lines in which the word is right. */
  readonly allowed?: RegExp;
  /** Occurrences that have not been replaced yet. The number may only fall; without it there may be none. */
  readonly pending?: number;
}

const EVERYWHERE: ReadonlyArray<Place> = ['identifier', 'prose', 'message', 'file name'];
const TEXT: ReadonlyArray<Place> = ['prose', 'message'];
const NAMES: ReadonlyArray<Place> = ['identifier', 'file name'];

export const WORDS: ReadonlyArray<ForbiddenWord> = [
  // Terms (LANGUAGE 2).
  { pattern: /\boutbox(es)?\b/i, places: EVERYWHERE, use: 'journal' },
  { pattern: /\bsweep(s|ing)?\b/i, places: EVERYWHERE, use: 'resync; in pages "full reconciliation"' },
  { pattern: /\bhint(s|ed)?\b/i, places: EVERYWHERE, use: 'trigger', allowed: /writeEarlyHints/ },
  { pattern: /\bpayers?\b/i, places: EVERYWHERE, use: 'charged scope' },
  { pattern: /\b(unpaid|paid (call|for)|pay for)\b/i, places: NAMES, use: 'charged' },
  { pattern: /\b(un)?paid (call|completion|request)s?\b/i, places: TEXT, use: 'charged' },
  // Records of the journal are dropped, figures of an account forgotten, and the account itself is finished.
  { pattern: /\bfinished (records?|bytes|lines?)\b/i, places: EVERYWHERE, use: 'dropped' },
  { pattern: /\bforget account\b/i, places: NAMES, use: 'finishAccount, forgetFigures' },
  { pattern: /\b(reported amount|leave reason)\b/i, places: NAMES, use: 'PendingAmount, spendOfAll; RejoinReason' },
  // The verb is right: "the process books its rows".
  {
    pattern: /\b(the|its|our|their|all|these|of|with|in|into|from) books\b/i,
    places: EVERYWHERE,
    use: 'ledger, ledger rows',
  },
  { pattern: /\bholds?\b/i, places: NAMES, use: 'reservation, reserve' },
  // The verb: "a process that reserves", "parts that must all match".
  { pattern: /\b(that reservations|all reservation)\b/i, places: EVERYWHERE, use: 'reserve, contain, match' },
  { pattern: /\bsecret entr(y|ies)\b/i, places: EVERYWHERE, use: "Secret key, the Secret's key `host`" },
  // Media of prompts and answers. Pages have pictures.
  { pattern: /\bsounds?\b/i, places: NAMES, use: 'audio' },
  {
    pattern: /\bthoughts?\b/i,
    places: ['identifier', 'prose'],
    use: 'reasoning; `thinking` only as the name of a member',
  },
  {
    pattern: /\b(is pictures?|picture (data|tokens)|max picture|of pictures)\b/i,
    places: ['identifier'],
    use: 'image',
  },
  // A member is one of a JSON object, or a User of a Team.
  {
    pattern:
      /\b(member (facts|checks?|problem|blocked|deletion|status)|(a|the|its|an instance with its) members? (has|have|claims?|keeps?|refers?|of an instance))\b/i,
    places: EVERYWHERE,
    use: 'scope object (a VirtualKey, User or Team)',
  },
  // An instance allows a namespace (`spec.allowedNamespaces`). A request or an object is admitted.
  { pattern: /\b(admits namespace|not admitted)\b/i, places: ['identifier', 'file name'], use: 'allows, notAllowed' },
  // Left to the next run: `deferred`. Too large to be loaded: `oversized`.
  { pattern: /\bpostpon(e|ed|es|ing)\b|\bdeferred namespaces?\b/i, places: EVERYWHERE, use: 'deferred; oversized' },
  { pattern: /\b(create turns|record turns?|turn deps)\b/i, places: NAMES, use: 'round robin, advance' },
  { pattern: /\bis final\b/i, places: NAMES, use: 'isConverged' },
  // A server sends a reply, a review gets a response; answers are texts of models (`n` of them).
  {
    pattern: /\b(answer (memory|headers)|(review|read|token) answer)\b/i,
    places: NAMES,
    use: 'reply; ReviewResponse',
  },
  // Words of the ledger and of the database with several meanings, and what each of them meant.
  {
    pattern: /\bgateway operator\.(entry(?! rejected)|charge|account charge)\b/i,
    places: TEXT,
    use: 'the table ledger_row, ledger_set, expired_row',
  },
  { pattern: /\b(account|uncorrected) charges?\b/i, places: NAMES, use: 'expired row' },
  { pattern: /\b(add|take|unreserved) charges?\b/i, places: NAMES, use: 'ended request' },
  // The profiler of V8 has an option callCount.
  {
    pattern: /\bcall count\b/i,
    places: NAMES,
    use: 'storeCalls; callNumber of an account',
    allowed: /startPreciseCoverage/,
  },
  { pattern: /^shared Store$/, places: ['identifier'], use: 'knownStoreOfIsolate, isPerRequest' },
  { pattern: /\b(by bounds|lacking)\b/i, places: NAMES, use: 'acceptsChangedAccounts, missingInSum' },
  {
    pattern:
      /\b(?<!model )entry (limits|index|use|marks?|estimates|price|address)\b|\b(move to|skip|leave|weighted) entry\b/i,
    places: NAMES,
    use: 'model entry',
  },
  { pattern: /\bretire values?\b/i, places: NAMES, use: 'end values: immediately or after an overlap' },
  { pattern: /\b(stale|known) epoch\b/i, places: NAMES, use: 'lostEpoch, foundEpoch' },
  { pattern: /\bbeats?\b/i, places: NAMES, use: 'heartbeat, or a period of the ledger' },
  { pattern: /\b(part (name|title)s?|live part|reachability)\b/i, places: NAMES, use: 'workload object; CheckResult' },
  { pattern: /\wDeps$/, places: ['type'], use: 'Dependencies' },
  // Tests and packages.
  {
    pattern: /\b(wish(es)?|forgetful store|play result|bench arrivals|measure arrivals)\b/i,
    places: NAMES,
    use: 'planned requests, restorable store, schedule result, settlement delays',
  },
  { pattern: /\bfloors?\b/i, places: EVERYWHERE, use: 'layer', allowed: /[Mm]ath\.floor|floor\(/ },
  { pattern: /(?<!test )\bkits?\b/i, places: EVERYWHERE, use: 'test kit' },
  { pattern: /\bscenes?\b/i, places: EVERYWHERE, use: 'scenario' },
  { pattern: /\b(adversity|mood|storm)\b/i, places: EVERYWHERE, use: 'fault' },
  { pattern: /\baccount ended\b/i, places: NAMES, use: 'accountClosed; the lease of an account ends' },
  { pattern: /\bhas successor\b/i, places: NAMES, use: 'hasLaterProcess; a successor continues the journal' },
  { pattern: /\b(create closing|closing close)\b/i, places: NAMES, use: 'createEndedAccounts, closeNamedIn' },
  {
    pattern: /\b(instance|database|scope object) blocked by\b/i,
    places: NAMES,
    use: 'obstacle; a VirtualKey is blocked',
  },
  { pattern: /\bis dropped now\b/i, places: NAMES, use: 'tryDropDay' },
  { pattern: /\bcreate repeated\b/i, places: NAMES, use: 'createFailureLog' },
  { pattern: /\bconnect (master|through)\b/i, places: NAMES, use: 'connectAnnounced, connectVia' },
  // Names of STYLE's table.
  { pattern: /\bpatience\b/i, places: EVERYWHERE, use: 'request deadline' },
  { pattern: /\bleftovers?\b/i, places: EVERYWHERE, use: 'journal replay' },
  { pattern: /\bdearest\b/i, places: EVERYWHERE, use: 'maximum cost' },
  { pattern: /^(most|longest|least)\b/i, places: ['identifier'], use: 'max, min' },
  {
    pattern: /^(told|said|silence|signs|lives|lent|visit|hands|gone|put aside)$/i,
    places: NAMES,
    use: 'the noun that STYLE.md lists for it',
  },
  {
    pattern:
      /\b(attendance|last words|crowding|performers|outlook|strays?|farewell|let go|judgement|shelf|drawer|act as|bed|witness|slipped in|tending|direct (body|reply))\b/i,
    places: NAMES,
    use: 'a term of the field (STYLE.md lists these words)',
  },
  {
    pattern:
      /^([A-Z][a-z]*(?<!Fe|Se|Ne)ed|[A-Z][a-z]+ing|Told|Said|Paid|Held|Lent|Sent|Kept|Made|Done|Shown|Grown|Known|Seen|Read|Left|Gone|Lost|Found|Given|Taken|Written|Broken|Own|Spent|Who|Whom|One|Aside)$/,
    places: ['type'],
    use: 'a domain noun, such as StatusReport for Told',
    allowed: /\b(Booking|Finding|Closing|Signing)\b/,
  },
  // Prose (LANGUAGE 1.5).
  { pattern: /\bof ours\b/i, places: TEXT, use: 'our …' },
  {
    pattern: /\b(stands?|standing|stood) (in(?! for| the way| its way)|beside|at|there)\b/i,
    allowed: /stand-in/,
    places: TEXT,
    use: 'is in, is beside',
  },
  { pattern: /\b(go|goes|going|went) on\b/i, places: EVERYWHERE, use: 'continue', allowed: /'Go on\.'/ },
  {
    pattern: /\b(works?|serves?|served|counts?|exists?|may be|is|are|writes there) no more\b(?! than)/i,
    places: TEXT,
    use: 'no longer works',
  },
  { pattern: /\bbesides\b/i, places: TEXT, use: 'also' },
  { pattern: /\bthe (one|ones) before\b/i, places: TEXT, use: 'the previous …' },
  { pattern: /\bat once\b/i, places: TEXT, use: 'immediately, concurrently', allowed: /looked at once/ },
  { pattern: /\bmend(s|ed|ing)?\b/i, places: EVERYWHERE, use: 'fix, repair' },
  {
    pattern: /\b(away with|met by|so long as|ere)\b/i,
    places: TEXT,
    use: 'clean up, fails with, while, before',
  },
];

export interface Occurrence {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Text of one place, with the line on which it begins. */
interface Fragment {
  readonly place: Place;
  readonly text: string;
  readonly line: number;
}

const FILES = '{README.md,{crds,functions,infra,test,docs}/**/*.{ts,lua,md,yaml,yml,tpl,sh}}';
/** This list, and data that others have written. */
const EXCEPT =
  /node_modules|^infra\/tools\/words\.ts$|^test\/rules\/words\.test\.ts$|\/manifests\/.*\.yaml$|files\/crds\//;

/** Every occurrence of each word in the source, the pages and the manifests. */
export function findWords(
  words: ReadonlyArray<ForbiddenWord> = WORDS,
): ReadonlyMap<ForbiddenWord, ReadonlyArray<Occurrence>> {
  const found = new Map<ForbiddenWord, Occurrence[]>(words.map((word) => [word, []]));
  for (const path of globSync(FILES, { cwd: ROOT }).sort()) {
    if (EXCEPT.test(path)) continue;
    for (const [word, occurrences] of occurrencesIn(path, readFileSync(join(ROOT, path), 'utf8'), words))
      found.get(word)?.push(...occurrences);
  }
  return found;
}

/** The occurrences of each word in the text of one file. */
export function occurrencesIn(
  path: string,
  text: string,
  words: ReadonlyArray<ForbiddenWord> = WORDS,
): ReadonlyArray<readonly [ForbiddenWord, ReadonlyArray<Occurrence>]> {
  const lines = text.split('\n');
  const name: Fragment = { place: 'file name', text: toWords(basename(path)), line: 0 };
  const fragments = [name, ...fragmentsOf(path, text)];
  return words.map((word) => {
    const isRight = (line: number) => word.allowed?.test(lines[line - 1] ?? '') === true;
    const found = fragments
      .filter(({ place, text }) => word.places.includes(place) && word.pattern.test(text))
      .filter(({ line }) => !isRight(line))
      .map((fragment) => ({ path, line: fragment.line, text: (lines[fragment.line - 1] ?? path).trim() }));
    return [word, found];
  });
}

function fragmentsOf(path: string, text: string): ReadonlyArray<Fragment> {
  if (path.endsWith('.md')) return linesOf('prose', text, 1);
  if (path.endsWith('.ts')) return partsOf(text, TYPESCRIPT);
  if (path.endsWith('.lua')) return partsOf(text, LUA);
  return linesOf('message', text, 1);
}

/** Comments, strings and templates. A quote in a regular expression may be read as the begin of a string. */
const TYPESCRIPT =
  /(?<prose>\/\/.*|\/\*[\s\S]*?\*\/)|(?<message>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)/g;
const LUA = /(?<prose>--.*)|(?<message>'[^'\n]*'|"[^"\n]*")/g;
const IMPORT = /(?:from|import) $|import\($/;

function partsOf(text: string, pattern: RegExp): ReadonlyArray<Fragment> {
  const fragments: Fragment[] = [];
  let [end, line] = [0, 1];
  const code = (until: number) => {
    const part = text.slice(end, until);
    fragments.push(...namesOf(part, line));
    line += part.split('\n').length - 1;
  };
  for (const match of text.matchAll(pattern)) {
    code(match.index);
    const isImport = IMPORT.test(text.slice(Math.max(0, match.index - 8), match.index));
    const place = match.groups?.prose === undefined ? 'message' : 'prose';
    if (!isImport) fragments.push(...linesOf(place, match[0], line));
    line += match[0].split('\n').length - 1;
    end = match.index + match[0].length;
  }
  code(text.length);
  return fragments;
}

function namesOf(code: string, first: number): ReadonlyArray<Fragment> {
  return code.split('\n').flatMap((text, at) => {
    const identifiers = text.match(/[A-Za-z_$][\w$]*/g) ?? [];
    const [, type] = /\b(?:interface|type|class) ([A-Z]\w*)\s*(?:<.*>\s*)?(?:=|\{|extends|$)/.exec(text) ?? [];
    return [
      ...identifiers.map((name) => ({ place: 'identifier' as const, text: toWords(name), line: first + at })),
      ...(type === undefined ? [] : [{ place: 'type' as const, text: type, line: first + at }]),
    ];
  });
}

const linesOf = (place: Place, text: string, first: number): ReadonlyArray<Fragment> =>
  text.split('\n').map((line, at) => ({ place, text: toWords(line), line: first + at }));

/**
 * The words of a name or text: `createJournal`, `create_journal` and `create-journal` are `create Journal` and so on.
 */
const toWords = (text: string): string => text.replaceAll(/(?<=[a-z\d])(?=[A-Z])|[_-]+/g, ' ');

function main([wanted]: ReadonlyArray<string>): void {
  for (const [word, occurrences] of findWords()) {
    if (wanted !== undefined && !word.pattern.test(wanted)) continue;
    if (wanted !== undefined)
      for (const { path, line, text } of occurrences) process.stdout.write(`${path}:${line}: ${text.slice(0, 160)}\n`);
    process.stdout.write(`${occurrences.length} of ${word.pattern}: ${word.use} (pending: ${word.pending ?? 0})\n`);
  }
}

if (import.meta.main) main(process.argv.slice(2));
