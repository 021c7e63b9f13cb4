import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { toast } from "../base/announce.ts";
import { signOut, type Session } from "../base/session.ts";
import { chooseTheme, useTheme, type Theme } from "../base/theme.ts";
import { Icon, type IconName } from "../components/icons.tsx";
import type { MenuItem } from "../components/menu-props.ts";
import { Menu } from "../components/menu.tsx";

const THEMES: readonly { theme: Theme; title: string; icon: IconName }[] = [
  { theme: "system", title: "As the system", icon: "screen" },
  { theme: "light", title: "Light", icon: "sun" },
  { theme: "dark", title: "Dark", icon: "moon" },
];

/** Who one is, the theme, and the way out. */
export function UserMenu({ session: { caller, config } }: { session: Session }): JSX.Element {
  const { route } = useLocation();
  const chosen = useTheme();
  const isKnown = caller !== undefined && (config.enabled || caller.kind !== "anonymous");
  const name = isKnown ? caller.subject : "Not signed in";
  const databases = caller?.databases ?? undefined;
  const leave = async () => {
    try {
      await signOut();
      route("/ui/sign-in");
    } catch (error) {
      toast(`Signing out failed: ${error instanceof Error ? error.message : String(error)}`, "bad");
    }
  };
  const themes = THEMES.map(({ theme, title, icon }, index): MenuItem => ({
    id: theme,
    title,
    icon,
    isChosen: theme === chosen,
    heading: index === 0 ? "Theme" : undefined,
    run: () => chooseTheme(theme),
  }));
  const items: MenuItem[] = [
    ...themes,
    { id: "docs", title: "API reference", icon: "book", heading: "More", run: () => location.assign("/docs") },
    isKnown
      ? { id: "leave", title: "Sign out", icon: "signOut", run: () => void leave() }
      : { id: "enter", title: "Sign in", icon: "key", run: () => route("/ui/sign-in") },
  ];
  return (
    <Menu
      label={`Account: ${name}`}
      class="user-button"
      items={items}
      head={
        <>
          <strong>{name}</strong>
          {caller !== undefined && <span>Role {caller.role}</span>}
          {databases !== undefined && <span>Databases: {databases.join(", ")}</span>}
        </>
      }
    >
      <Icon name="user" />
      <span class="user-name">{name}</span>
    </Menu>
  );
}
