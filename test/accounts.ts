// Kubeconfigs of the functions' service accounts, with the rights that access.yaml gives them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { run } from './child.ts';

/** Applies access.yaml, and answers kubeconfigs of its accounts: a token each, and nothing of whoever made them. */
export async function openAccounts(
  kubeconfig: string,
  folder: string,
): Promise<Readonly<Record<'admission' | 'reconcile', string>>> {
  const kubectl = async (...args: string[]) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: kubeconfig });
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  await kubectl('apply', '-f', 'infra/kubernetes/access.yaml');
  const view = JSON.parse(await kubectl('config', 'view', '--raw', '--minify', '--flatten', '-o', 'json'));
  const accountOf = async (name: string) => {
    const token = (await kubectl('-n', 'gateway-operator', 'create', 'token', name)).trim();
    const users = [{ name: view.users[0].name, user: { token } }];
    const file = join(folder, `${name}.kubeconfig`);
    writeFileSync(file, stringify({ ...view, users }), { mode: 0o600 });
    return file;
  };
  return { admission: await accountOf('admission'), reconcile: await accountOf('reconcile') };
}
