import type { JSX } from "preact";
import { useDatabase, usePageAddress, useSchema } from "../base/schema.ts";
import type { Session } from "../base/session.ts";
import { Button } from "../components/button.tsx";
import { Combobox } from "../components/combobox.tsx";
import { ICON } from "../components/icon-address.ts";
import { Icon } from "../components/icons.tsx";
import { KeyHint } from "../components/key-hint.tsx";
import { UserMenu } from "./user-menu.tsx";

type HeaderProps = { session: Session; onPalette: () => void; onKeys: () => void };

export function Header({ session, onPalette, onKeys }: HeaderProps): JSX.Element {
  const addressOf = usePageAddress();
  return (
    <header class="header">
      <a class="brand" href={addressOf("")} aria-label="engine: overview">
        <img src={ICON} alt="" width={24} height={24} />
        <span>engine</span>
      </a>
      <DatabaseSelector />
      <button type="button" class="search-button" onClick={onPalette} aria-haspopup="dialog">
        <Icon name="explore" size={16} />
        <span class="search-text">Go to…</span>
        <span class="search-keys" aria-hidden="true">
          <KeyHint keys="Mod-K" />
        </span>
      </button>
      <Button look="quiet" icon="keyboard" label="Keys" class="header-keys" onClick={onKeys} />
      <UserMenu session={session} />
    </header>
  );
}

/** The database that pages are about; it is in the address. */
function DatabaseSelector(): JSX.Element | null {
  const { data } = useSchema();
  const [database, choose] = useDatabase();
  if (data === undefined || data.length === 0) return null;
  const names = data.map(({ name }) => name);
  // One of an address that is gone, or of somebody else, is still said.
  const all = names.includes(database) ? names : [database, ...names];
  return (
    <Combobox
      class="database-selector"
      label="Database"
      isLabelHidden
      value={database}
      options={all.map((name) => ({ value: name, title: name }))}
      onChange={choose}
    />
  );
}
