// The replies of a Redis, checked before the client library reads them: each answers a command, has a bounded size and
// an expected shape.
import { AnswerRefused } from '../backends/reply-memory.ts';

/**
 * The maximum of all replies before a connection is ready: the state of the server, which the library reads repeatedly
 * while the server loads its data.
 */
const MAX_HANDSHAKE = 64 * 1024;
/** The maximum length of a status or an error. */
const MAX_LINE = 16 * 1024;
/** The maximum elements of a list: the library allocates memory for the announced number. */
const MAX_ELEMENTS = 64;

const [CR, LF, PLUS, MINUS, COLON, DOLLAR, STAR] = [0x0d, 0x0a, 0x2b, 0x2d, 0x3a, 0x24, 0x2a];
const CHECK = ': check that the Secret names the right server';
const tooMuch = ({ max }: ReplyState) => new AnswerRefused(`answers with more than ${max / 1024} KiB${CHECK}`);
const notRedis = () => new AnswerRefused(`sends data that is no reply of a Redis${CHECK}`);

/** The state of a connection: which part of which reply comes next. */
interface ReplyState {
  /** Bytes of a text that are left, its end included. */
  text: number;
  /** The kind of the line that is being read; 0: none. */
  kind: number;
  line: string;
  /** The last byte was the first of a line's end. */
  isEnding: boolean;
  /** Elements of a list that are left. */
  elements: number;
  /** Bytes of this reply; before the connection is ready: of all. */
  bytes: number;
  max: number;
  isReady: boolean;
  /** Commands without a reply. */
  pendingCommands: number;
}

/**
 * `commandSent`: a command was sent. `ready`: the handshake has ended, so that replies may have `maxReply` bytes.
 * `read` throws AnswerRefused for data that the library must not get. Only RESP2: simple texts, errors, numbers, texts,
 * and one level of lists.
 */
export function createReplyGuard(maxReply: number) {
  const state: ReplyState = {
    text: 0,
    kind: 0,
    line: '',
    isEnding: false,
    elements: 0,
    pendingCommands: 0,
    bytes: 0,
    max: MAX_HANDSHAKE,
    isReady: false,
  };
  return {
    commandSent: (): void => {
      state.pendingCommands += 1;
    },
    ready: (): void => {
      Object.assign(state, { bytes: 0, max: maxReply, isReady: true });
    },
    /** Returns whether a reply ends with this chunk. */
    read: (chunk: Uint8Array): boolean => {
      for (let at = 0; at < chunk.length; ) at += step(state, chunk, at);
      return state.kind === 0 && state.text === 0 && state.elements === 0;
    },
  };
}

/** Reads the next part of the chunk; returns its length. */
function step(state: ReplyState, chunk: Uint8Array, at: number): number {
  const read = state.text > 0 ? Math.min(state.text, chunk.length - at) : 1;
  state.bytes += read;
  if (state.bytes > state.max) throw tooMuch(state);
  if (state.text > 0) {
    state.text -= read;
    if (state.text === 0) endElement(state);
    return read;
  }
  const byte = chunk[at] ?? 0;
  if (state.kind === 0) begin(state, byte);
  // The library ends a line at its first CR, wherever LF is.
  else if (state.isEnding !== (byte === LF) || state.line.length >= MAX_LINE) throw notRedis();
  else if (state.isEnding) endLine(state);
  else if (byte === CR) state.isEnding = true;
  else state.line += isNumber(state.kind) ? String.fromCharCode(byte) : '.';
  return 1;
}

const isNumber = (kind: number): boolean => kind === DOLLAR || kind === STAR;

function begin(state: ReplyState, kind: number): void {
  const isFirst = state.elements === 0;
  if (isFirst && state.pendingCommands === 0) throw new AnswerRefused(`sends a reply without a command${CHECK}`);
  if (![PLUS, MINUS, COLON, DOLLAR].includes(kind) && !(kind === STAR && isFirst)) throw notRedis();
  Object.assign(state, { kind, line: '', isEnding: false });
}

function endLine(state: ReplyState): void {
  const { kind, line } = state;
  state.kind = 0;
  if (isNumber(kind) && !/^(-1|\d{1,9})$/.test(line)) throw notRedis();
  const count = isNumber(kind) ? Number(line) : -1;
  if (kind === DOLLAR && count > state.max) throw tooMuch(state);
  if (kind === DOLLAR && count >= 0) state.text = count + 2;
  else if (kind === STAR && count > MAX_ELEMENTS) throw notRedis();
  else if (kind === STAR && count > 0) state.elements = count;
  else endElement(state);
}

function endElement(state: ReplyState): void {
  state.elements = Math.max(0, state.elements - 1);
  if (state.elements > 0) return;
  if (state.isReady) state.bytes = 0;
  state.pendingCommands -= 1;
}
