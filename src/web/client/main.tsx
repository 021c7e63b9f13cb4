import { render } from "preact";
import { applyTheme } from "./base/theme.ts";
import { App } from "./shell/app.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/shell.css";

applyTheme();
const place = document.getElementById("app");
if (place === null) throw new Error("the page has no place for the application");
render(<App />, place);
