// Commands of the recording: those of README.md, in its order.

/** Commands that start these blocks of README.md, and how many lines of each the recording shows. */
const BLOCKS: ReadonlyArray<readonly [start: string, lines: number]> = [
  ['export KUBECONFIG', 1],
  ['KEY_SECRET=', 3],
  ['curl $BASE_URL/chat', 1],
  ["kubectl apply -f - <<'END'", 15],
];

/** A command has the lines that one would type before it runs. */
export function commandsOf(readme: string): readonly string[] {
  const blocks = [...readme.matchAll(/^```sh\n(.*?)\n```$/gms)].map(([, block = '']) => block);
  return BLOCKS.flatMap(([start, count]) => {
    const block = blocks.find((one) => one.startsWith(start));
    if (block === undefined) throw new Error(`README.md: no block starts with ${start}`);
    return toCommands(block.split('\n').slice(0, count));
  });
}

/** Here-documents and loops continue over several lines. */
function toCommands(lines: readonly string[]): readonly string[] {
  const commands: string[] = [];
  let end: string | undefined;
  for (const line of lines) {
    if (end === undefined) commands.push(line);
    else commands.push(`${commands.pop()}\n${line}`);
    if (end === undefined) end = line.endsWith("<<'END'") ? 'END' : line.endsWith('; do') ? 'done' : undefined;
    else if (line === end) end = undefined;
  }
  return commands;
}
