#include "storage/report/style.h"

#include <fmt/format.h>

namespace stepscope::storage {
namespace {

constexpr PaletteColour kPalette[] = {
    {"window", "#F3F4F6", "#14161A"},
    {"panel", "#FFFFFF", "#1B1E23"},
    {"raised", "#F8F9FB", "#21252B"},
    {"border", "#DCE0E6", "#31363F"},
    {"grid", "#EEF0F3", "#252930"},
    {"text", "#1B2029", "#E4E7EB"},
    {"muted", "#5C6675", "#9BA5B3"},
    {"faint", "#707A88", "#8590A0"},
    {"accent", "#2358D6", "#78A9FF"},
    {"select", "#DCE8FF", "#22385F"},
    {"ok", "#2B7A4B", "#5BBF86"},
    {"warn", "#8F5A08", "#E0A94A"},
    {"error", "#B3261E", "#F2827B"},
    {"flame0", "#C9DAF6", "#2C4470"},
    {"flame1", "#DFE8F8", "#263653"},
    {"flame2", "#ECF1FA", "#232C3D"},
    {"matmul", "#2F67B2", "#5C93DB"},
    {"convolution", "#2F67B2", "#5C93DB"},
    {"normalization", "#2C7A59", "#55A985"},
    {"activation", "#A8482F", "#D27C62"},
    {"movement", "#6A7079", "#8B929C"},
    {"reduction", "#7A5CA8", "#A98BD6"},
    {"elementwise", "#4B6A86", "#7F9CB8"},
    {"loss", "#9A2D5B", "#D16A97"},
    {"optimizer", "#8A6A12", "#C7A445"},
    {"random", "#7A5CA8", "#A98BD6"},
    {"control", "#6A7079", "#8B929C"},
    {"other", "#6A7079", "#8B929C"},
    {"forward", "#2F67B2", "#5C93DB"},
    {"backward", "#A8482F", "#D27C62"},
    {"recompute", "#7A5CA8", "#A98BD6"},
    {"c-parameter", "#8A93A1", "#717B89"},
    {"c-frozen", "#B4BAC4", "#555E6B"},
    {"c-optimizer_state", "#8A6A12", "#A98A35"},
    {"c-gradient", "#C29A2C", "#D9B44A"},
    {"c-activation", "#5B8FD0", "#4E82C6"},
    {"c-stash", "#C4735C", "#B9664F"},
    {"c-backward", "#6F8FA8", "#5F7E97"},
    {"c-workspace", "#7A5CA8", "#A98BD6"},
    {"c-input", "#2C7A59", "#55A985"},
    {"c-constant", "#CBD0D8", "#444C58"},
    {"c-update", "#9A2D5B", "#D16A97"},
};

constexpr std::string_view kRules = R"css(
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:20px}
body{margin:0;background:var(--window);color:var(--text);font:14px/20px Inter,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-feature-settings:"tnum";font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}
.page{display:grid;grid-template-columns:168px minmax(0,1120px);gap:36px;justify-content:center;padding:0 28px 64px}
nav{position:sticky;top:0;align-self:start;padding:34px 0 0;font-size:13px}
nav b{display:block;font-weight:600;margin:0 0 14px 11px;letter-spacing:.01em}
nav a{display:block;color:var(--muted);text-decoration:none;padding:4px 10px;border-left:1px solid var(--border)}
nav a:hover{color:var(--text);border-left-color:var(--accent)}
nav a .n{float:right;color:var(--warn)}
main{min-width:0}
header{padding:30px 0 22px}
h1{font-size:25px;line-height:32px;font-weight:650;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:16px;line-height:22px;font-weight:650;margin:0}
h3{font-size:13px;line-height:18px;font-weight:600;margin:22px 0 6px}
.chip{display:inline-block;border:1px solid var(--border);border-radius:4px;padding:0 7px;font-size:12px;line-height:18px;color:var(--muted);vertical-align:1px}
.chip.ok{color:var(--ok);border-color:var(--ok)}.chip.error{color:var(--error);border-color:var(--error)}
.chip.warn{color:var(--warn);border-color:var(--warn)}.chip.accent{color:var(--accent);border-color:var(--accent)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(168px,1fr));gap:1px;background:var(--border);border:1px solid var(--border);border-radius:8px;overflow:hidden;margin-top:20px}
.tile{background:var(--panel);padding:14px 16px 13px;min-width:0}
.tile dt{font-size:12px;line-height:16px;color:var(--muted)}.tile dd{margin:5px 0 2px;font-size:22px;line-height:28px;font-weight:600;letter-spacing:-.01em;white-space:nowrap}
.tile dd small{font-size:14px;font-weight:500;color:var(--muted)}.tile p{margin:0;font-size:12px;line-height:17px;color:var(--muted)}
dl{margin:0}
section{background:var(--panel);border:1px solid var(--border);border-radius:8px;padding:20px 22px 22px;margin-top:16px}
p{margin:6px 0 0}.sub{color:var(--muted);margin:2px 0 0;font-size:13px;max-width:86ch}
.empty{color:var(--muted);border:1px dashed var(--border);border-radius:6px;padding:14px 16px;margin:14px 0 0}
.scroll{overflow-x:auto;margin-top:14px}
table{border-collapse:collapse;width:100%;font-size:13px;line-height:18px}
th{font-weight:500;font-size:12px;color:var(--muted);text-align:right;padding:5px 8px;border-bottom:1px solid var(--border);white-space:nowrap;vertical-align:bottom}
td{text-align:right;padding:5px 8px;border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}
tbody tr:last-child td{border-bottom:0}tbody tr:hover td{background:var(--raised)}
th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}
th.l,td.l{text-align:left}td.w{white-space:normal;overflow-wrap:anywhere}td.l.w{min-width:210px}td.l.w.mono{min-width:110px}
.dim{color:var(--muted)}td.dim{color:var(--muted)}.bad{color:var(--error)}
.k{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:8px}
td.bar{position:relative;min-width:104px;padding-left:14px}td.bar i{position:absolute;left:14px;top:6px;height:16px;border-radius:2px;opacity:.32;min-width:1px;width:calc((100% - 78px)*var(--w))}
td.bar span{position:relative}
code,.mono{font-family:ui-monospace,"JetBrains Mono",SFMono-Regular,Menlo,Consolas,monospace;font-size:.92em}
details{margin-top:4px}summary{cursor:pointer;color:var(--accent);width:max-content;max-width:100%}summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
details ul{margin:4px 0 4px;padding-left:18px;color:var(--muted)}
.alert{display:grid;grid-template-columns:max-content 1fr max-content;gap:4px 12px;padding:9px 0;border-bottom:1px solid var(--grid);align-items:baseline}
.alert:last-child{border-bottom:0;padding-bottom:0}.alert .at{color:var(--muted);font-size:12px;white-space:nowrap}.alert p{margin:0;overflow-wrap:anywhere}
.kv{display:grid;grid-template-columns:150px 1fr;gap:3px 14px;margin:10px 0 0}.kv dt{color:var(--muted)}.kv dd{margin:0;overflow-wrap:anywhere}
.two{display:grid;grid-template-columns:1fr 1fr;gap:0 36px}
.three{display:grid;grid-template-columns:repeat(3,1fr);gap:0 26px}
.bullets{margin:8px 0 0;padding-left:18px}.alerts{margin-top:8px}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;margin:12px 0 0;font-size:12px;line-height:20px;color:var(--muted)}.legend b{font-weight:500;color:var(--text)}
.stack{display:flex;height:22px;border-radius:4px;overflow:hidden;margin-top:10px;gap:1px;background:var(--panel)}.stack i{display:block;min-width:2px}
svg{display:block;width:100%;height:auto;overflow:visible;margin-top:12px}
svg text{font-size:11px;fill:var(--muted)}svg .lab{fill:var(--text)}svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--border);stroke-width:1}
svg .line{fill:none;stroke:var(--accent);stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}svg .raw{fill:none;stroke:var(--accent);stroke-width:1;opacity:.35;stroke-linejoin:round}
svg .dot{fill:var(--accent)}svg .nan{fill:var(--error)}svg .area{fill:var(--accent);opacity:.07;stroke:none}
svg .h rect{fill:none;pointer-events:all}svg .h .t{visibility:hidden;pointer-events:none}svg .h:hover .t{visibility:visible}
svg .t line{stroke:var(--muted);stroke-width:1;stroke-dasharray:2 3}svg .t circle{fill:var(--accent);stroke:var(--panel);stroke-width:1.5}
svg .t text{fill:var(--text);font-size:12px;font-weight:500;paint-order:stroke;stroke:var(--panel);stroke-width:5px;stroke-linejoin:round}
svg .box{stroke:var(--panel);stroke-width:.5}svg .box:hover{stroke:var(--text);stroke-width:1}
td svg{width:160px;height:14px;margin:0}svg .stroke{stroke-width:2}
svg .roof{stroke:var(--text);stroke-width:1.2;opacity:.75}svg .spot{opacity:.5;stroke:var(--panel);stroke-width:.6}svg .spot:hover{opacity:1;stroke:var(--text);stroke-width:1}
svg .mark{stroke:var(--text);stroke-width:1;stroke-dasharray:4 3}svg .bound{stroke:var(--ok);stroke-width:1;stroke-dasharray:1 3}
svg .halo{paint-order:stroke;stroke:var(--panel);stroke-width:4px;stroke-linejoin:round;fill:var(--text)}
footer{color:var(--faint);font-size:12px;margin-top:22px}
@media (max-width:1080px){.page{grid-template-columns:minmax(0,1fr);padding:0 16px 48px}nav{display:none}.two,.three{grid-template-columns:1fr}}
@media print{body{background:#fff}.page{display:block;padding:0}nav{display:none}section{break-inside:avoid;border:0;border-top:1px solid var(--border);border-radius:0;padding:16px 0}}
)css";

}  // namespace

std::span<const PaletteColour> palette() { return kPalette; }

std::string reportStyle() {
  std::string light, dark;
  for (const PaletteColour& colour : kPalette) {
    light += fmt::format("--{}:{};", colour.name, colour.light);
    dark += fmt::format("--{}:{};", colour.name, colour.dark);
  }
  return fmt::format("\n:root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}{}", light,
                     dark, kRules);
}

}  // namespace stepscope::storage
