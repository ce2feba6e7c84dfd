// The recording of README.md: its commands are those of the page, and it is a file that every browser shows by itself.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandsOf } from '../recording/commands.ts';
import { toCommandLines, toRecording } from '../recording/terminal.ts';

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../..', path), 'utf8');
const recording = read('docs/pictures/ten-minutes.svg');
const decode = (text: string) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

test('the commands of the recording are those of README.md; if not, `npm run record` makes it anew', () => {
  const shown = [...recording.matchAll(/<text [^>]*class="c"[^>]*>(.*)<\/text>/g)].map(([, text = '']) => decode(text));
  expect(shown).toEqual(['npm start', ...commandsOf(read('README.md'))].flatMap(toCommandLines));
});

test('the recording ends with a request that is refused, because the budget of its key is spent', () => {
  const [, end = ''] = recording.split('done</text>');
  expect(end).toContain('>HTTP/1.1 200 OK<');
  expect(end).toContain('>HTTP/1.1 429 Too Many Requests<');
  expect(decode(end.replaceAll(/<[^>]*>\n?/g, ''))).toContain('"code":"budget_exceeded"');
});

test('the recording has neither a script nor anything from another host nor a key value, and is below 200 KB', () => {
  expect(recording.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/<script|url\((?!#)|@import|href=|sk-/);
  expect(recording.length).toBeLessThan(200_000);
});

test('a terminal cuts long lines, shows each at its time, and what it shows is text', () => {
  const svg = toRecording([{ at: 2, text: '<b> & "c"' }], 'A title');
  expect(svg).toContain('>&lt;b&gt; &amp; "c"</text>');
  expect(svg).toContain('@keyframes l0{0%{opacity:0}20.00%{opacity:1}}');
  expect(toCommandLines(`${'x'.repeat(100)}\ny`)).toEqual([`$ ${'x'.repeat(98)}`, 'xx', '> y']);
});
