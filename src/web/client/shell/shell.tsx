import { Route, Router, useLocation } from "preact-iso";
import { exec } from "preact-iso/router";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../base/announce.ts";
import { listenForKeys, useCommands, type Command } from "../base/commands.ts";
import { usePageAddress } from "../base/schema.ts";
import type { Session } from "../base/session.ts";
import { chooseTheme, THEMES } from "../base/theme.ts";
import { NotFoundPage } from "../pages/not-found/not-found.tsx";
import { PAGES } from "../pages/pages.ts";
import { CommandPalette } from "./command-palette.tsx";
import { Header } from "./header.tsx";
import { KeyList } from "./key-list.tsx";
import { Navigation } from "./navigation.tsx";
import { PageView } from "./page-view.tsx";
import { Unexpected } from "./unexpected.tsx";

/** What is around every page: navigation, header, banner, palette, list of keys. */
export function Shell({ session }: { session: Session }): JSX.Element {
  const [open, setOpen] = useState<"palette" | "keys" | undefined>();
  const main = useRef<HTMLElement>(null);
  const { path } = useLocation();
  useShellCommands(setOpen);
  useEffect(listenForKeys, []);
  useTitleAndFocus(path, main);
  return (
    <div class="shell">
      {/* A button, as a link would take the place of the fragment, which may hold a text of the page. */}
      <button type="button" class="skip-link" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <Header session={session} onPalette={() => setOpen("palette")} onKeys={() => setOpen("keys")} />
      {!session.config.enabled && <OpenBanner />}
      <Navigation />
      <main id="main" class="main" ref={main} tabIndex={-1}>
        <Unexpected key={path}>
          <Router>
            {PAGES.map((page) => (
              <Route key={page.path} path={`/ui/${page.path}`} component={PageView} page={page} />
            ))}
            <Route default component={NotFoundPage} />
          </Router>
        </Unexpected>
      </main>
      {open === "palette" && <CommandPalette onClose={() => setOpen(undefined)} />}
      {open === "keys" && <KeyList onClose={() => setOpen(undefined)} />}
    </div>
  );
}

function OpenBanner(): JSX.Element {
  return (
    <section class="banner" aria-label="Warning">
      Authentication is off: whoever reaches this address may read and change everything.
    </section>
  );
}

function useShellCommands(open: (what: "palette" | "keys") => void): void {
  const { route } = useLocation();
  const addressOf = usePageAddress();
  const pages = PAGES.filter(({ place }) => place !== undefined).map(({ path, title, keys }): Command => ({
    id: `page:${path}`,
    title,
    group: "Pages",
    keys,
    run: () => route(addressOf(path)),
  }));
  const themes = THEMES.map((theme): Command => ({
    id: `theme:${theme}`,
    title: `Theme: ${theme}`,
    group: "Appearance",
    run: () => chooseTheme(theme),
  }));
  useCommands([
    ...pages,
    { id: "palette", title: "Open the command palette", group: "Help", keys: "Mod-K", run: () => open("palette") },
    { id: "keys", title: "Show all keys", group: "Help", keys: "?", run: () => open("keys") },
    { id: "docs", title: "Read the API reference", group: "Help", run: () => location.assign("/docs") },
    ...themes,
  ]);
}

/** A new page is read out, and Tab begins at its start; the first one leaves the focus where the browser has it. */
function useTitleAndFocus(path: string, main: { current: HTMLElement | null }): void {
  const isFirst = useRef(true);
  useEffect(() => {
    const page = PAGES.find((one) => exec(path, `/ui/${one.path}`) !== undefined);
    const title = page?.title ?? "Page not found";
    document.title = `${title} · engine`;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    announce(title);
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path, main]);
}
