import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { usePageAddress } from "../base/schema.ts";
import { useMay } from "../base/session.ts";
import { Icon } from "../components/icons.tsx";
import { SECTIONS, type Page } from "../pages/page.ts";
import { PAGES } from "../pages/pages.ts";

/** Beside the page, or below it where there is little room. */
export function Navigation(): JSX.Element {
  const sections = SECTIONS.map((section) => ({
    section,
    pages: PAGES.filter(({ place }) => place?.section === section),
  })).filter(({ pages }) => pages.length > 0);
  return (
    <nav class="navigation" aria-label="Pages">
      {sections.map(({ section, pages }) => (
        <div key={section} class="nav-section">
          <p class="nav-heading" id={`nav-${section}`}>
            {section}
          </p>
          <ul aria-labelledby={`nav-${section}`}>
            {pages.map((page) => (
              <NavigationLink key={page.path} page={page} />
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function NavigationLink({ page }: { page: Page }): JSX.Element {
  const { path, title, place, needs, part } = page;
  const { path: here } = useLocation();
  const addressOf = usePageAddress();
  const may = useMay(needs);
  const own = `/ui/${path}`;
  const isHere = path === "" ? /^\/ui\/?$/.test(here) : here === own || here.startsWith(`${own}/`);
  const content = (
    <>
      {place !== undefined && <Icon name={place.icon} size={19} />}
      <span>{title}</span>
    </>
  );
  if (!may) {
    return (
      <li>
        <span class="nav-link nav-off" title={`This needs the role ${needs ?? ""}.`}>
          {content}
          <span class="unseen">, needs the role {needs}</span>
        </span>
      </li>
    );
  }
  return (
    <li>
      <a
        class="nav-link"
        href={addressOf(path)}
        aria-current={isHere ? "page" : undefined}
        // A page that somebody reaches for is there when they click.
        onPointerEnter={() => void part.load().catch(() => undefined)}
      >
        {content}
      </a>
    </li>
  );
}
