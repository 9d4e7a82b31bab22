//! `nuncio client route-preview`: which route a call would take, and why.

use super::connect::{routes, state_dir, wish};
use super::print_json;
use super::routes::choose::{Wish, choose};
use super::routes::{Route, saved};
use super::settings::Settings;
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::terminal::{Cell, Table, colours, width};

/// Runs the command.
pub(crate) fn run(settings: &Settings, save: bool) -> Result<(), Failure> {
    let all = routes(settings)?;
    if all.is_empty() {
        return Err(Failure::usage(vec!["At least one --route is required, or routes in --config.".into()]));
    }
    if save {
        self::save(settings)?;
    }
    let wish = wish(settings);
    // Saving alone is a whole wish.
    if matches!(wish, Wish { name: None, skill: None, prompt: None }) {
        return show(settings, &all);
    }
    let chosen = choose(&all, &wish).map_err(Failure::failed)?;
    show(settings, std::slice::from_ref(chosen.route))?;
    tell(&format!("Route {} is taken: {}.\n", chosen.route.name, chosen.why));
    Ok(())
}

fn save(settings: &Settings) -> Result<(), Failure> {
    if settings.routes.is_empty() {
        return Err(Failure::usage(vec!["--save-routes needs at least one --route to save.".into()]));
    }
    let folder = state_dir(settings)
        .ok_or_else(|| Failure::usage(vec!["--route-state-dir is required with --save-routes.".into()]))?;
    let path = saved::save(&folder, &settings.routes)?;
    tell(&format!("Saved {} in {}.\n", count(settings.routes.len()), path.display()));
    Ok(())
}

fn count(routes: usize) -> String {
    if routes == 1 { "1 route".into() } else { format!("{routes} routes") }
}

/// One route as an object, several as a list.
fn show(settings: &Settings, routes: &[Route]) -> Result<(), Failure> {
    if settings.is_json() {
        return if let [route] = routes { print_json(route) } else { print_json(routes) };
    }
    let mut table = Table::new(&["Route", "URL", "Skills", "Tags"]);
    for route in routes {
        let (skills, tags) = (route.skills.join(", "), route.tags.join(", "));
        table.row(vec![Cell::new(&route.name), Cell::new(&route.url), Cell::new(&skills), Cell::new(&tags)]);
    }
    print(&table.render(width(), colours(&std::io::stdout())))
}
