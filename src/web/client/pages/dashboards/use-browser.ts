import { useEffect, useLayoutEffect, useState } from "preact/hooks";

type Ref = { readonly current: HTMLElement | null };

/** What is drawn a little before it is scrolled to has its rows when it is seen. */
const AROUND = "120px 0px";

/** Whether the element is on the screen, or nearly. */
export function useIsInView(element: Ref): boolean {
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const watcher = new IntersectionObserver((seen) => setInView(seen.at(-1)?.isIntersecting === true), {
      rootMargin: AROUND,
    });
    watcher.observe(current);
    return () => watcher.disconnect();
  }, [element]);
  return isInView;
}

/** Whether this tab of the browser is the one that is shown. */
export function useIsTabShown(): boolean {
  const [isShown, setShown] = useState(() => document.visibilityState === "visible");
  useEffect(() => {
    const read = () => setShown(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", read);
    return () => document.removeEventListener("visibilitychange", read);
  }, []);
  return isShown;
}

export function useSizePx(element: Ref): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return;
    const read = () => {
      const { clientWidth: width, clientHeight: height } = current;
      setSize((now) => (now.width === width && now.height === height ? now : { width, height }));
    };
    read();
    const watcher = new ResizeObserver(read);
    watcher.observe(current);
    return () => watcher.disconnect();
  }, [element]);
  return size;
}
