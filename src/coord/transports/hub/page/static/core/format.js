// Values as people say them. Everything is pure; the reader's zone and language come from the browser.

// 100 -> "1m40s", 840 -> "14m", 3900 -> "1h5m", 90000 -> "1d1h": no more than a reader can use.
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const join = (large, small, unit, part) => `${large}${unit}${small ? `${small}${part}` : ""}`;
  if (whole < 60) return `${whole}s`;
  if (whole < 600) return join(Math.floor(whole / 60), whole % 60, "m", "s");
  if (whole < 3600) return `${Math.floor(whole / 60)}m`;
  if (whole < 86400) return join(Math.floor(whole / 3600), Math.floor(whole / 60) % 60, "h", "m");
  return join(Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, "d", "h");
}

export const ago = (ms, now) => (!ms ? "" : now - ms < 2000 ? "now" : `${duration((now - ms) / 1000)} ago`);
export const left = (ms, now) => (!ms ? "" : ms <= now ? "expired" : duration((ms - now) / 1000));

// The digits are those of the words around them: durations and fences are not translated either.
const DIGITS = {numberingSystem: "latn"};
const plain = new Intl.NumberFormat(undefined, DIGITS);
const short = new Intl.NumberFormat(undefined, {...DIGITS, notation: "compact", maximumFractionDigits: 1});
const cents = new Intl.NumberFormat(undefined, {...DIGITS, minimumFractionDigits: 2, maximumFractionDigits: 2});
export const number = (value) => plain.format(value ?? 0);
export const compact = (value) => short.format(value ?? 0);
export const percent = (value) => `${Math.round(value)}%`;

// Micro-dollars -> "$1.24"; less than a cent as "<$0.01".
export function money(micros) {
  const dollars = (micros ?? 0) / 1e6;
  if (dollars > 0 && dollars < 0.01) return "<$0.01";
  return `$${cents.format(dollars)}`;
}

// What was spent, as `coord cost` says it: "~" if a part is estimated, "?" where the price of some tokens is unknown.
export function spent({cost = 0, estimated = 0, unpriced = 0} = {}) {
  const known = cost + estimated;
  return known ? `${estimated ? "~" : ""}${money(known)}${unpriced ? "+?" : ""}` : unpriced ? "?" : "";
}

export function bytes(count) {
  const unit = Math.min(4, Math.floor(Math.log2(Math.max(1, count)) / 10));
  return `${unit ? (count / 1024 ** unit).toFixed(1) : count} ${["B", "KB", "MB", "GB", "TB"][unit]}`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {...DIGITS, hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
const DAY = new Intl.DateTimeFormat(undefined, {...DIGITS, month: "short", day: "numeric"});
const WHOLE = new Intl.DateTimeFormat(undefined, {...DIGITS, dateStyle: "medium", timeStyle: "long"});
export const clock = (ms) => CLOCK.format(ms);
export const day = (ms) => DAY.format(ms);
export const moment = (ms) => WHOLE.format(ms);

// The time of day, with the date if it was on another day.
export function when(ms, now = Date.now()) {
  if (!ms) return "";
  return new Date(ms).toDateString() === new Date(now).toDateString() ? clock(ms) : `${day(ms)} ${clock(ms)}`;
}

export const count = (many, one, more = `${one}s`) => `${number(many)} ${many === 1 ? one : more}`;
export const ordinal = (place) => {
  const tail = place % 100 > 10 && place % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][place % 10] ?? "th";
  return `${place}${tail}`;
};

// The same beside other words: "5m left".
export const timeLeft = (ms, now) => (!ms ? "no limit" : `${left(ms, now)}${ms > now ? " left" : ""}`);

// Text of others as it can be shown: control characters as pictures, bidirectional overrides by name.
export function visible(value) {
  return String(value ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b\ufeff]/g, picture);
}

function picture(each) {
  const code = each.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `⟨${code.toString(16).padStart(4, "0")}⟩`;
}

// "file:src/a.py" -> "src/a.py"; names and projects keep their kind.
export const resource = (name) => (name?.startsWith("file:") ? name.slice(5) : name ?? "");

// The name of the lock on a file of git, of which no character is a wildcard.
export const fileResource = (path) => `file:${path.replace(/[\\*?[{}]/g, "\\$&")}`;

// A word of a command line, quoted if a shell would read more into it; control characters are escaped, because a
// terminal would obey them when somebody pastes the line.
export function quoted(word) {
  const text = String(word);
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/[\\']/g, "\\$&").replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (each) => (each === "\n" ? "\\n" : `\\u${each.codePointAt(0).toString(16).padStart(4, "0")}`));
  return `$'${escaped}'`;
}

// A command line. A word {free} is what somebody typed: behind `--` it is no option, whatever it begins with.
export function commandLine(words) {
  const plain = words.map((word) => word?.free ?? word).filter((word, place) => !(words[place]?.free ?? "").startsWith("-"));
  const dashed = words.map((word) => word?.free ?? "").filter((word) => word.startsWith("-"));
  return [...plain, ...(dashed.length ? ["--", ...dashed] : [])].map(quoted).join(" ");
}
