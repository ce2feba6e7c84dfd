// The note of a hold in Redis: a text that the script never reads; it reads the scopes, which are kept beside it.
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { HoldNote, SettleNote } from '#core/ports/store.ts';

/** `start:end`, made once per object: the ledger has one object per policy and window. */
export function windowText(of: ScopeWindow): string {
  const before = known.get(of);
  if (before !== undefined) return before;
  if (/[\n\t]/.test(of.scopeId)) throw new Error(`scope "${of.scopeId}": must not contain a tab or a line feed`);
  const text = `${of.window.start}:${of.window.end}`;
  known.set(of, text);
  return text;
}
const known = new WeakMap<ScopeWindow, string>();

/** The text of a note: the windows of its scopes, then model and identifier. */
export function noteText(note: HoldNote): string {
  return textsOf(note).note;
}

interface Texts {
  readonly model: string;
  readonly identifier: string;
  /** Windows of the scopes. */
  readonly windows: string;
  /** Model and identifier in JSON, separated by a comma. */
  readonly names: string;
  readonly note: string;
}

/** The last texts of each list of charges: the ledger has one list per list of scopes, and a key often asks for the same model again. */
const lasts = new WeakMap<HoldNote['charges'], Texts>();

function textsOf({ charges, model, identifier }: HoldNote): Texts {
  const last = lasts.get(charges);
  if (last !== undefined && last.model === model && last.identifier === identifier) return last;
  const names = `${JSON.stringify(model)},${JSON.stringify(identifier)}`;
  const windows = last?.windows ?? charges.map((charge) => `${windowText(charge)} `).join('');
  const texts = { model, identifier, windows, names, note: `${windows}[${names}]` };
  lasts.set(charges, texts);
  return texts;
}

/** The note of a text; `names`: the scopes as the script stores them. */
export function toNote(names: string, text: string): HoldNote {
  const scopes = names === '' ? [] : names.split('\n');
  const at = text.indexOf('[');
  if (at < 0) return { charges: [], model: '', identifier: '' };
  const windows = text.slice(0, at).split(' ');
  // Unchanged since `noteText` wrote it.
  const [model, identifier] = JSON.parse(text.slice(at)) as [string, string];
  return {
    charges: scopes.map((scopeId, place) => ({ scopeId, window: windowOf(windows[place]) })),
    model,
    identifier,
  };
}

export function windowOf(text = ''): ScopeWindow['window'] {
  const [start, end] = text.split(':').map(Number);
  if (start === undefined || end === undefined) throw new Error(`the store returned an invalid window "${text}"`);
  return { start, end };
}

const KINDS = { settled: 's', correction: 'c', expired: 'e' } as const;

/** The text of a settlement. The script reads its first letter, the kind; the scopes stay with the hold. */
export function settlementText(settlement: SettleNote): string {
  const { kind, tokens, estimated, settledAt } = settlement;
  const { input, output, cachedInput, cacheWrite } = tokens;
  const counts = `${input},${output},${cachedInput},${cacheWrite},${estimated ? 1 : 0},${settledAt}`;
  return `${KINDS[kind]}[${counts},${textsOf(settlement).names}]`;
}

type SettlementNumbers = [number, number, number, number, 0 | 1, number, string, string];

export function toSettlement(text: string, kind: SettleNote['kind'], hold: HoldNote): SettleNote {
  // Unchanged since `settlementText` wrote it.
  const settlement = JSON.parse(text.slice(1)) as SettlementNumbers;
  const [input, output, cachedInput, cacheWrite, estimated, settledAt, model, identifier] = settlement;
  const tokens = { input, output, cachedInput, cacheWrite };
  return { kind, charges: hold.charges, tokens, model, identifier, estimated: estimated === 1, settledAt };
}
