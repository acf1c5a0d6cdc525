// One colour per domain, in the order in which they came into the graph, so that it keeps it as the graph grows.

const CHOSEN = {
  dark: ["#6ea8fe", "#ff9f5a", "#4fd1a5", "#f27ba5", "#b69cff", "#ffd166", "#5bd0e6", "#e58a7b", "#a3d977", "#d69be8", "#8fb3c9", "#e0b98a"],
  light: ["#2f6fde", "#d9661f", "#11936b", "#cf3f78", "#7450d8", "#b98700", "#0f8ca3", "#b3503f", "#5c9420", "#a04fbd", "#52788f", "#97703c"],
};

export const THEMES = {
  dark: { ground: "#0e1117", ink: "#e8ecf3", soft: "#97a2b3", dim: "#1d2430", link: "#8fa3c4", strong: "#ffffff", tree: 0.16, cross: 0.05 },
  light: { ground: "#fbfbfd", ink: "#1b2230", soft: "#5c6778", dim: "#e3e7ee", link: "#51617d", strong: "#111722", tree: 0.16, cross: 0.05 },
};

export function palette(theme, n) {
  const chosen = CHOSEN[theme];
  const lightness = theme === "dark" ? 0.7 : 0.45;
  return Array.from({ length: n }, (_, i) => chosen[i] ?? hsl((i * 137.508) % 360, 0.55, lightness));
}

// #rrggbb with an opacity, as sigma's lines want it: multiplied by the opacity already.
export function faded(colour, opacity) {
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) * opacity);
  return `#${[...channels, 255 * opacity].map((value) => Math.round(value).toString(16).padStart(2, "0")).join("")}`;
}

function hsl(hue, saturation, lightness) {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255).toString(16).padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}
